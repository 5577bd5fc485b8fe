# Headers that most files include, read once: that is half of the time of a build. Files include what they use all the
# same; the presets asan, tsan and cuda-only precompile nothing, and there it shows.
#
# A set of headers is a target that others take it from: target_precompile_headers(<target> REUSE_FROM precompiled_<set>).
# Both have to be compiled with the same options for code: -O, -fPIC.
set(FUSEJIT_PRECOMPILED fmt/format.h algorithm array cmath cstdint cstring functional map memory mutex optional set span
  string string_view unordered_map unordered_set utility variant vector)

# The headers above and those that are named.
function(fusejit_precompiled name)
  add_library(precompiled_${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
  target_link_libraries(precompiled_${name} PRIVATE ${FUSEJIT_LOG})
  list(TRANSFORM FUSEJIT_PRECOMPILED REPLACE "(.+)" "<\\1>" OUTPUT_VARIABLE headers)
  target_precompile_headers(precompiled_${name} PRIVATE ${headers} ${ARGN})
endfunction()
