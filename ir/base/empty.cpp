// A folder that has no source in this configuration (codegen without x86) still needs a translation unit.
