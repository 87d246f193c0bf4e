module redlockd.example/redlockd

go 1.19
