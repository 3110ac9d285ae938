# A fake libcuda and libcublas over the simulator (tests/fakecuda), and the tests of gpu/ that run on it. Most use PTX
# written by hand and exist in every build; those of the kernels that ship need them compiled.
file(GLOB fakecuda_sources CONFIGURE_DEPENDS tests/fakecuda/fakecuda*.c)
# The library's file and not the target, which brings `base`: its objects are not made for a shared library.
add_library(fakecuda SHARED ${fakecuda_sources} core/base/arena.c core/base/error.c core/base/view.c)
target_link_libraries(fakecuda PRIVATE flags $<TARGET_FILE:ptxsim> Threads::Threads m)
add_dependencies(fakecuda ptxsim)

# The linker takes the shared library's calls of malloc for calls of the wrapper, so it must see that.
set_source_files_properties(tests/support/failing_malloc.c PROPERTIES COMPILE_OPTIONS -fvisibility=default)
folder_tests(fakecuda gpu gpu fakecuda)
if(TARGET test_fakecuda)
  target_sources(test_fakecuda PRIVATE tests/fakecuda/small_images.c tests/fakecuda/device_scene.c)
  target_compile_definitions(test_fakecuda PRIVATE FAKECUDA_PATH="$<TARGET_FILE:fakecuda>")
  if(NOT cuda_sources)
    message(WARNING "The CUDA host layer is tested on kernels written by hand only: this build has none of its own.")
  endif()
endif()

# What gpu/driver.h declares itself is compared with NVIDIA's toolkit where there is one.
if(TARGET test_fakecuda AND SHEAF_NVCC)
  get_filename_component(cuda_root ${SHEAF_NVCC} DIRECTORY)
  get_filename_component(cuda_root ${cuda_root} DIRECTORY)
  find_file(SHEAF_CUDA_STUB libcuda.so NO_DEFAULT_PATH HINTS ${cuda_root}/lib64/stubs ${cuda_root}/lib/stubs
    ${cuda_root}/targets/x86_64-linux/lib/stubs)
  find_path(SHEAF_CUDA_HEADERS cuda.h NO_DEFAULT_PATH HINTS ${cuda_root}/include ${cuda_root}/targets/x86_64-linux/include)
  mark_as_advanced(SHEAF_CUDA_STUB SHEAF_CUDA_HEADERS)
  if(SHEAF_CUDA_STUB)
    target_compile_definitions(test_fakecuda PRIVATE FAKECUDA_STUB="${SHEAF_CUDA_STUB}")
  endif()
  if(SHEAF_CUDA_HEADERS)
    target_include_directories(test_fakecuda SYSTEM PRIVATE ${SHEAF_CUDA_HEADERS})
    target_compile_definitions(test_fakecuda PRIVATE FAKECUDA_HEADERS)
  endif()
endif()

# The backend on the kernels that ship.
if(TARGET test_fakecuda AND cuda_sources)
  file(GLOB sources CONFIGURE_DEPENDS tests/gpu/backend/*.c)
  add_executable(test_gpu_backend ${sources})
  target_link_libraries(test_gpu_backend PRIVATE test_support gpu engine fakecuda PkgConfig::CRITERION)
  target_compile_options(test_gpu_backend PRIVATE -Wno-conversion -Wno-missing-prototypes -Wno-pedantic)
  target_compile_definitions(test_gpu_backend PRIVATE FAKECUDA_PATH="$<TARGET_FILE:fakecuda>"
    SHEAF_BINARY_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${SHEAF_TEST_PREFIX}gpu/backend COMMAND test_gpu_backend --timeout 600)
  set_tests_properties(${SHEAF_TEST_PREFIX}gpu/backend PROPERTIES LABELS gpu TIMEOUT 1800)
endif()
