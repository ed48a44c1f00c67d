# cmake --install: the static libraries of all layers, their headers below include/baton, the shared library of the C
# interface, the command line, and a package that find_package(Baton) finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY BATON_LAYERS)
install(TARGETS ${layers} baton_all baton_c EXPORT BatonTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS baton RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(layer base topologies ir sim synth codegen runtime)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${layer} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/baton
          FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "prelude" EXCLUDE)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/codegen/prelude/abi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/baton/codegen/prelude)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Baton)
install(EXPORT BatonTargets NAMESPACE Baton:: DESTINATION ${package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/BatonConfig.cmake.in ${PROJECT_BINARY_DIR}/BatonConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/BatonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/BatonConfig.cmake ${PROJECT_BINARY_DIR}/BatonConfigVersion.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindClp.cmake ${PROJECT_SOURCE_DIR}/cmake/FindZ3.cmake DESTINATION ${package})
