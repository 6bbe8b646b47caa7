# kernels as strings in C, without the files that are in the same text
/^#include "gpu\//d
s/[\\"]/\\&/g
s/^/"/
s/$/\\n"/
