# Embeds core/model/families/*.yaml into a C source at build time, so that the program needs no data files.
# Included by CMakeLists.txt; the custom command runs this same file as a script to write the source.
if(CMAKE_SCRIPT_MODE_FILE)
  set(arrays "")
  set(rows "")
  file(GLOB files ${FAMILIES}/*.yaml)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n    " bytes "${bytes}")
    string(APPEND arrays "static const unsigned char ${name}[] = {\n    ${bytes}};\n\n")
    string(APPEND rows "    {\"${name}\", (const char *)${name}, sizeof ${name}},\n")
  endforeach()
  file(WRITE ${OUTPUT} "/* Generated from core/model/families by cmake/families.cmake. */
#include \"core/model/families.h\"

${arrays}const struct family_source families_table[] = {
${rows}};
const size_t families_count = sizeof families_table / sizeof *families_table;
")
  return()
endif()

file(GLOB family_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/core/model/families/*.yaml)
set(families_source ${CMAKE_BINARY_DIR}/generated/families.c)
add_custom_command(OUTPUT ${families_source}
  COMMAND ${CMAKE_COMMAND} -DFAMILIES=${CMAKE_SOURCE_DIR}/core/model/families -DOUTPUT=${families_source} -P ${CMAKE_SOURCE_DIR}/cmake/families.cmake
  DEPENDS ${family_files} ${CMAKE_SOURCE_DIR}/cmake/families.cmake
  COMMENT "Embedding model families" VERBATIM)
target_sources(model PRIVATE ${families_source})
