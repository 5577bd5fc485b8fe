# Installs the build in BINARY_DIR into a fresh folder and builds this folder against it: once by find_package, once by
# pkg-config. Run as: cmake -DBINARY_DIR=... -P installed.cmake
set(work ${BINARY_DIR}/installed_test)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# What `./dev build` builds is enough.
file(GLOB library ${BINARY_DIR}/libfusejit.so*)
file(REMOVE ${library} ${work})  # `work` is not there: a list that is never empty
run(${CMAKE_COMMAND} --build ${BINARY_DIR} --target programs)
run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${prefix})
foreach(file LICENSE README.md docs/coming-from-pytorch.md docs/ops.md)
  if(NOT EXISTS ${prefix}/share/doc/fusejit/${file})
    message(FATAL_ERROR "share/doc/fusejit/${file} is not installed")
  endif()
endforeach()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build -DCMAKE_PREFIX_PATH=${prefix}
  -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)

file(GLOB_RECURSE pc ${prefix}/fusejit.pc)
cmake_path(GET pc PARENT_PATH where)
set(ENV{PKG_CONFIG_PATH} ${where})
run(sh -c "c++ ${FLAGS} ${CMAKE_CURRENT_LIST_DIR}/main.cpp -o ${work}/by_pkg_config $(pkg-config --cflags --libs fusejit)")
cmake_path(GET where PARENT_PATH libraries)
set(ENV{LD_LIBRARY_PATH} ${libraries})
run(${work}/by_pkg_config)
