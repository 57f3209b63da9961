# The id is database/table/state_id. Quote it: a state_id may hold any character, slashes too.
terraform import clickhousestate_entry.github 'meltano/state/prod:tap-github-to-target-clickhouse'
