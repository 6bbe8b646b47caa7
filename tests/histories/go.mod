module nf-placer/tests/histories

go 1.22.0

require github.com/anishathalye/porcupine v1.0.0
