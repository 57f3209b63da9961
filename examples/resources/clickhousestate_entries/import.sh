# The id is database/table for all entries, or database/table/pattern. Quote it.
terraform import clickhousestate_entries.project 'meltano/state/prod:*'
