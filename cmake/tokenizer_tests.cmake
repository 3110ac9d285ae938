# The program behind scripts/compare_tokenizer.py.
add_executable(tokenize_dump tests/tokenizer/tokenize_dump.c)
target_link_libraries(tokenize_dump PRIVATE model)
