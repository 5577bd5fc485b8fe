# Writes OUTPUT, the identity of what makes plans and kernels: a hash over the sources under ROOT that decide about them,
# and over OPTIONS. A version string would not do: between two releases the same version makes other code.
#   cmake -DROOT=… -DOUTPUT=… -DOPTIONS=… -P cmake/identity.cmake
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/ir/* ${ROOT}/scheduler/* ${ROOT}/codegen/* ${ROOT}/runtime/cudnn/*)
list(SORT sources)
set(all "${OPTIONS}")
foreach(source ${sources})
  file(SHA256 ${ROOT}/${source} hash)
  string(APPEND all "\n${source} ${hash}")
endforeach()
string(SHA256 identity "${all}")
string(SUBSTRING ${identity} 0 32 identity)
file(WRITE ${OUTPUT}
  "#include \"runtime/disk/identity.h\"\n\nnamespace fusejit::runtime::disk {\n\n"
  "std::string_view source_identity() { return \"${identity}\"; }\n\n}  // namespace fusejit::runtime::disk\n")
