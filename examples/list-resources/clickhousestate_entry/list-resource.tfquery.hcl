# terraform query
# terraform query -generate-config-out=pipelines.tf   # writes resources and import blocks
list "clickhousestate_entry" "prod" {
  provider         = clickhousestate
  include_resource = true
  limit            = 1000

  config {
    pattern = "prod:*"
  }
}
