data "clickhousestate_table" "state" {}

# Warn in every plan and apply if the table is not what it should be.
check "state_table" {
  assert {
    condition     = data.clickhousestate_table.state.oldest_unmerged_seconds < 7 * 24 * 3600
    error_message = "Old versions have not been merged for a week: is the server merging at all?"
  }
  assert {
    condition     = data.clickhousestate_table.state.ahead_seconds == 0
    error_message = "A version from the future hides what pipelines write for ${data.clickhousestate_table.state.ahead_seconds} s."
  }
  assert {
    condition     = data.clickhousestate_table.state.lock_layout == "strict"
    error_message = "The lock table is as Meltano makes it: several pipelines cannot lock each other out."
  }
}
