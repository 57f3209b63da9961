# The id is database/name.
terraform import clickhousestate_table.state meltano/state
