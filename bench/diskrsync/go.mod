module volferry.io/bench/diskrsync

go 1.26.0

require github.com/dop251/diskrsync v1.3.0

require (
	github.com/VividCortex/ewma v1.2.0 // indirect
	github.com/acarl005/stripansi v0.0.0-20180116102854-5a71ef0e047d // indirect
	github.com/dop251/spgz v1.2.0 // indirect
	github.com/mattn/go-runewidth v0.0.13 // indirect
	github.com/rivo/uniseg v0.2.0 // indirect
	github.com/vbauerster/mpb/v7 v7.4.1 // indirect
	golang.org/x/crypto v0.0.0-20220312131142-6068a2e6cfdc // indirect
	golang.org/x/sys v0.0.0-20220310020820-b874c991c1a5 // indirect
)
