# Creates meltano.state and its lock table meltano.state_lock.
resource "clickhousestate_table" "state" {
  database        = "meltano"
  name            = "state"
  create_database = true
  comment         = "Bookmarks of the Meltano pipelines"
}

# With MergeTree settings of its own.
resource "clickhousestate_table" "staging" {
  database = clickhousestate_table.state.database
  name     = "state_staging"

  settings = {
    min_age_to_force_merge_seconds = "3600"
  }
}
