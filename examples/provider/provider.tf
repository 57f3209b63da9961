terraform {
  required_providers {
    clickhousestate = {
      source = "clickhousestate/clickhousestate"
    }
  }
}

provider "clickhousestate" {
  host     = "clickhouse.example.com"
  secure   = true
  username = "terraform"
  # The password is best left to the environment: CLICKHOUSE_PASSWORD.
}
