# terraform plan  -invoke=action.clickhousestate_clear.pull_request    # lists what it would delete
# terraform apply -invoke=action.clickhousestate_clear.pull_request
action "clickhousestate_clear" "pull_request" {
  config {
    # The environment of a pull request that is closed.
    pattern = "pr-42:*"
  }
}
