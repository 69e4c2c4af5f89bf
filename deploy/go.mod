module github.com/entail-dev/entail/deploy

go 1.26.0
