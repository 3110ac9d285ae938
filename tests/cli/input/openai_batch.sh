# Lines of OpenAI's batch format run as they are; what would change the result and cannot be done is
# an error row.
. "$CASE/../prelude"
cat > batch.jsonl <<'END'
{"custom_id":"chat","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","messages":[{"role":"system","content":"Be short."},{"role":"user","content":"hello"}],"max_tokens":4,"temperature":0,"stream":false,"n":1}}
{"custom_id":"complete","method":"POST","url":"/v1/completions","body":{"prompt":"once upon","max_completion_tokens":4,"stop":["zzz"],"seed":3}}
{"custom_id":"tools","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"x"}],"tools":[]}}
{"custom_id":"embed","method":"POST","url":"/v1/embeddings","body":{"input":"x"}}
{"custom_id":"many","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"x"}],"n":2}}
END
sheaf run batch.jsonl --ignore-eos -q -o out.jsonl -n 8
rows out.jsonl | jq -c '[.id, .status, .error.code // .tokens.completion, .error.message]'
python3 "$CASE/../check_schema.py" row out.jsonl
