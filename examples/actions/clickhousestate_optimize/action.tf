# terraform apply -invoke=action.clickhousestate_optimize.state
action "clickhousestate_optimize" "state" {
  config {
    name = "state"
  }
}
