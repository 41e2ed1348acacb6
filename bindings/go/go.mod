module stowage

go 1.19
