module stowage_test

go 1.19

require stowage v0.0.0

replace stowage => ../../../bindings/go
