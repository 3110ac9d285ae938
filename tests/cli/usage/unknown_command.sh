# A command that does not exist starts nothing.
"$SHEAF" summarise documents/
