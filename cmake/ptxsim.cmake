# The PTX simulator of the tests, and its kernels compiled where nvcc is found.
file(GLOB ptxsim_sources CONFIGURE_DEPENDS tests/ptxsim/*.c)
list(FILTER ptxsim_sources EXCLUDE REGEX "/test_[^/]*\\.c$")
add_library(ptxsim STATIC ${ptxsim_sources})
target_link_libraries(ptxsim PUBLIC flags base Threads::Threads m)
set_target_properties(ptxsim PROPERTIES POSITION_INDEPENDENT_CODE ON) # it is also in fakecuda
# A register's lanes are read as floats and as integers; fast even where the rest is a debug build.
target_compile_options(ptxsim PRIVATE -O2 -ftree-vectorize -fno-strict-aliasing
  $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>) # clang does not vectorize all that it is asked to

find_program(SHEAF_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
file(GLOB ptxsim_kernels CONFIGURE_DEPENDS tests/ptxsim/kernels/*.cu)
set(ptxsim_outputs "")
if(SHEAF_NVCC AND ptxsim_kernels AND NOT SHEAF_SANITIZE)
  foreach(source IN LISTS ptxsim_kernels)
    get_filename_component(name ${source} NAME_WE)
    foreach(capability IN ITEMS 75 80 89)
      set(output ${CMAKE_BINARY_DIR}/ptxsim/${name}.sm_${capability}.ptx)
      add_custom_command(OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/ptxsim
        COMMAND ${SHEAF_NVCC} -std=c++17 -I${CMAKE_SOURCE_DIR} -arch=compute_${capability} -ptx ${source} -o ${output}
        DEPENDS ${source} VERBATIM)
      list(APPEND ptxsim_outputs ${output})
    endforeach()
  endforeach()
elseif(NOT SHEAF_NVCC)
  message(WARNING "nvcc was not found: the simulator is tested on PTX written by hand only, not on what the compiler emits")
endif()
add_custom_target(ptxsim_ptx DEPENDS ${ptxsim_outputs})
folder_tests(ptxsim gpu ptxsim)
if(TARGET test_ptxsim)
  add_dependencies(test_ptxsim ptxsim_ptx)
  if(SHEAF_NVCC AND NOT SHEAF_SANITIZE)
    target_compile_definitions(test_ptxsim PRIVATE PTXSIM_HAS_NVCC)
  endif()
endif()
