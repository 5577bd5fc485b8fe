// Nothing. A set of precompiled headers is a target, and a target has a source.
