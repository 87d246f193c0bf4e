module github.com/redlockd/redlockd/api/clients/go

go 1.19
