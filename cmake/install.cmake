# What `cmake --install` lays down: one shared library, the public headers, the programs, a CMake package and a
# pkg-config file. Users of the library see none of its own dependencies.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(folders fusejit_ir fusejit_scheduler fusejit_codegen fusejit_runtime fusejit_frontend)
list(TRANSFORM folders REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(fusejit_shared SHARED ${objects})
set_target_properties(fusejit_shared PROPERTIES OUTPUT_NAME fusejit EXPORT_NAME fusejit LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_link_libraries(fusejit_shared PRIVATE ${folders})  # for what they link to; their objects are in already
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_link_options(fusejit_shared PRIVATE -Wl,--no-undefined)
endif()
target_compile_features(fusejit_shared INTERFACE cxx_std_20)

install(TARGETS fusejit_shared EXPORT fusejitTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(folder ir frontend)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/include)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endif()
endforeach()
install(FILES LICENSE README.md ARCHITECTURE.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN site EXCLUDE)
foreach(program fusejit fusejit-dump)  # where a folder of tools/ makes one
  if(EXISTS ${PROJECT_SOURCE_DIR}/tools/${program}/main.cpp)
    install(PROGRAMS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${program} DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/fusejit)
install(EXPORT fusejitTargets NAMESPACE fusejit:: DESTINATION ${package})
file(WRITE ${PROJECT_BINARY_DIR}/fusejitConfig.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/fusejitTargets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fusejitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fusejitConfig.cmake ${PROJECT_BINARY_DIR}/fusejitConfigVersion.cmake
  DESTINATION ${package})

file(RELATIVE_PATH up /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)  # lib may be lib/x86_64-linux-gnu
configure_file(${CMAKE_CURRENT_LIST_DIR}/fusejit.pc.in ${PROJECT_BINARY_DIR}/fusejit.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/fusejit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
