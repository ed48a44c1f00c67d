# Layers, their tests and embedded files. A layer's DEPENDS line is the list of arrows it may draw.

file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include/baton SYMBOLIC)

function(baton_compile_options target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    # The precompiled header is shared with the libraries, so executables are compiled alike: -fPIC, not -fPIE.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow $<$<BOOL:${BATON_WERROR}>:-Werror>)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    # Fused multiply-add rounds otherwise, and schedules shall be the same everywhere; x86-64 has it only by -march.
    target_compile_options(${target} PRIVATE -ffp-contract=off)
  endif()
  if(BATON_SANITIZE)
    # Undefined behavior ends the program too, else a test or a fuzzer would pass it by.
    target_compile_options(${target} PUBLIC -fsanitize=${BATON_SANITIZE} -fno-sanitize-recover=undefined
                                            -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${BATON_SANITIZE})
  endif()
  if(BATON_LIBFUZZER)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)  # what is covered steers the search
  endif()
endfunction()

# baton_unity(TARGET): several sources a compiler run, so that what they include is read and instantiated once.
function(baton_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${BATON_UNITY} UNITY_BUILD_BATCH_SIZE 6)
  if(BATON_UNITY)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # a source is no header here
  endif()
endfunction()

# baton_layer(NAME [DEPENDS layer...] [LIBRARIES lib...]): static library baton_NAME of all sources in this folder.
function(baton_layer name)
  cmake_parse_arguments(arg "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(baton_${name} STATIC ${sources})
  add_library(baton::${name} ALIAS baton_${name})
  baton_compile_options(baton_${name})
  baton_unity(baton_${name})
  target_include_directories(baton_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                                                  $<INSTALL_INTERFACE:include>)
  target_compile_features(baton_${name} PUBLIC cxx_std_20)
  set_target_properties(baton_${name} PROPERTIES EXPORT_NAME ${name})
  if(name STREQUAL "base")
    # Not nlohmann/json.hpp: its inline functions would be instantiated at the end of every file.
    target_precompile_headers(baton_base PRIVATE
      <algorithm> <array> <cstdint> <functional> <map> <memory> <numeric> <optional> <set> <span> <string>
      <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
  else()
    target_precompile_headers(baton_${name} REUSE_FROM baton_base)
  endif()
  foreach(layer ${arg_DEPENDS})
    if(TARGET baton_${layer})
      target_link_libraries(baton_${name} PUBLIC baton_${layer})
    endif()
  endforeach()
  target_link_libraries(baton_${name} PRIVATE ${arg_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY BATON_LAYERS baton_${name})
endfunction()

# baton_layer_tests(NAME [LAYERS layer...]): executable baton_test_NAME of tests/NAME/*.cpp.
function(baton_layer_tests name)
  cmake_parse_arguments(arg "" "" "LAYERS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  if(NOT sources OR NOT TARGET baton_${name})
    return()
  endif()
  add_executable(baton_test_${name} ${sources})
  baton_compile_options(baton_test_${name})
  target_precompile_headers(baton_test_${name} REUSE_FROM baton_test_main)
  target_compile_options(baton_test_${name} PRIVATE -O1)  # they are compiled more often than run
  target_link_libraries(baton_test_${name} PRIVATE baton_test_main baton_${name} fmt::fmt nlohmann_json::nlohmann_json)
  foreach(layer ${arg_LAYERS})
    if(TARGET baton_${layer})
      target_link_libraries(baton_test_${name} PRIVATE baton_${layer})
    endif()
  endforeach()
  target_compile_definitions(baton_test_${name} PRIVATE BATON_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                        BATON_BINARY_DIR="${PROJECT_BINARY_DIR}")
  add_test(NAME ${name} COMMAND baton_test_${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900)
endfunction()

# baton_embed(TARGET NAME FILES...): a generated source with `std::span<const EmbeddedFile> NAME()` (base/embedded.hpp)
# holding the files' names (relative to the current folder) and contents.
function(baton_embed target name)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.cpp)
  string(REPLACE ";" "|" files "${ARGN}")
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DNAME=${name} -DROOT=${CMAKE_CURRENT_SOURCE_DIR} "-DFILES=${files}"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
