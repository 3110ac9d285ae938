# Error code bad_template: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
echo 'the text before' > before.txt && echo 'the text after' > after.txt
echo 'poison' > bad.txt
cat > own.jinja <<'END'
{%- for m in messages %}{% if 'poison' in m.content %}{{ raise_exception('it refuses poison') }}{% endif %}{{ m.content }}{% endfor %}
END
expect_error 'before.txt bad.txt after.txt' 'before.txt after.txt' -p x --chat-template own.jinja
