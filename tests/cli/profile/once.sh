# One profile of a few documents, quick enough for every sanitizer.
. "$CASE/../prelude"
documents 3 40
sheaf profile docs -p Summarize. -n 4 --json -q > report.json
python3 "$CASE/../check_schema.py" profile report.json
jq -c '[.run.documents, .run.steps > 0, (.documents | length)]' report.json
