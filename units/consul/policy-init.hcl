# What hadrain init needs, once for each Consul and after a loss of its data.
key_prefix "hadrain/state/" {
  policy = "list"
}

key "hadrain/state/.hadrain" {
  policy = "write"
}
