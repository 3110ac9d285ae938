# Each code of core/job/codes.c has its fixture here and stands in the schema, and no other does.
source="$CASE/../../.."
sed -n '/error_codes\[\]/,/};/s/^ *{"\([a-z0-9_]*\)".*/\1/p' "$source/core/job/codes.c" | sort > codes
ls "$CASE" | sed -n 's/\.sh$//p' | grep -v every_code | sort > fixtures
jq -r '.properties.error.properties.code.enum[]' "$source/core/job/row.schema.json" | sort > schema
wc -l < codes
diff codes fixtures && diff codes schema && echo same
