# The tests that are not Criterion executables: tidy rules, command line cases, tiny models, and the
# plain programs for ThreadSanitizer. They exist in every configuration; SHEAF_TEST_PREFIX keeps the
# names apart where scripts/check runs several configurations as one.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(sheaf_prefix "${SHEAF_TEST_PREFIX}")

# Models of a few hundred kilobytes, made once a build folder.
set(tiny_folder ${CMAKE_BINARY_DIR}/tiny)
if(EXISTS ${CMAKE_SOURCE_DIR}/scripts/make_tiny_model)
  get_property(criterion_tests DIRECTORY PROPERTY TESTS)
  if(criterion_tests)
    set_tests_properties(${criterion_tests} PROPERTIES FIXTURES_REQUIRED ${sheaf_prefix}tiny)
  endif()
  add_test(NAME ${sheaf_prefix}tiny_models
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/scripts/make_tiny_model ${tiny_folder})
  set_tests_properties(${sheaf_prefix}tiny_models PROPERTIES
    LABELS cli FIXTURES_SETUP ${sheaf_prefix}tiny TIMEOUT 300)
endif()

# One test a case: tests/cli/<topic>/<name>.sh.
if(TARGET sheaf)
  set(cli_options --sheaf $<TARGET_FILE:sheaf> --tiny ${tiny_folder} "--sanitizer=${SHEAF_SANITIZE}")
  if(SHEAF_TESTS AND cuda_sources) # with kernels to run in it
    list(APPEND cli_options --fakecuda $<TARGET_FILE:fakecuda>)
  endif()
  file(GLOB_RECURSE cli_cases CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/tests/cli ${CMAKE_SOURCE_DIR}/tests/cli/*.sh)
  foreach(case IN LISTS cli_cases)
    string(REGEX REPLACE "\\.sh$" "" name ${case})
    add_test(NAME ${sheaf_prefix}cli/${name}
      COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/cli/run_case.py ${cli_options}
        ${CMAKE_SOURCE_DIR}/tests/cli/${case})
    set_tests_properties(${sheaf_prefix}cli/${name} PROPERTIES
      LABELS cli FIXTURES_REQUIRED ${sheaf_prefix}tiny SKIP_RETURN_CODE 77 TIMEOUT 300)
  endforeach()
endif()

# Criterion does not start under ThreadSanitizer: what needs it has a plain main in tests/tsan.
if(SHEAF_SANITIZE MATCHES "thread")
  file(GLOB tsan_mains CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/tsan/*_main.c)
  file(GLOB tsan_support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*_cases.c)
  foreach(source IN LISTS tsan_mains)
    get_filename_component(name ${source} NAME_WE)
    add_executable(tsan_${name} ${source} ${tsan_support})
    target_link_libraries(tsan_${name} PRIVATE job)
    add_test(NAME ${sheaf_prefix}tsan/${name} COMMAND tsan_${name})
    set_tests_properties(${sheaf_prefix}tsan/${name} PROPERTIES
      LABELS core FIXTURES_REQUIRED ${sheaf_prefix}tiny TIMEOUT 300)
  endforeach()
endif()

# The tidy rules look at the source, so one configuration is enough: the one without instruments.
if(SHEAF_TESTS AND NOT SHEAF_SANITIZE AND NOT SHEAF_COVERAGE)
  set(tidy ${CMAKE_SOURCE_DIR}/tests/tidy/tidy.py)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${tidy} --list OUTPUT_VARIABLE rules OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "\n" ";" rules "${rules}")
  foreach(rule IN LISTS rules)
    add_test(NAME ${sheaf_prefix}tidy/${rule} COMMAND Python3::Interpreter ${tidy} ${rule})
    list(APPEND tidy_tests ${sheaf_prefix}tidy/${rule})
  endforeach()
  add_test(NAME ${sheaf_prefix}tidy/self_test COMMAND Python3::Interpreter ${tidy} --self-test)
  set(archives "")
  foreach(library base tokenizer_library weights model kernels engine profile gpu job)
    get_target_property(kind ${library} TYPE)
    if(kind STREQUAL "STATIC_LIBRARY")
      list(APPEND archives $<TARGET_FILE:${library}>)
    endif()
  endforeach()
  add_test(NAME ${sheaf_prefix}tidy/symbols COMMAND Python3::Interpreter ${tidy} symbols ${archives})
  add_test(NAME ${sheaf_prefix}tidy/format COMMAND ${CMAKE_SOURCE_DIR}/scripts/format --check)
  foreach(name self_test symbols format)
    list(APPEND tidy_tests ${sheaf_prefix}tidy/${name})
  endforeach()
  set_tests_properties(${tidy_tests} PROPERTIES LABELS tidy SKIP_RETURN_CODE 77)
endif()

if(SHEAF_TESTS)
  include(cmake/ptxsim.cmake)
  include(cmake/fakecuda.cmake)
endif()
