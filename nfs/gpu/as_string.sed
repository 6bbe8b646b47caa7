# kernels as strings in C, without the files that are in the same text
/^#include "gpu\//d
/^#pragma once$/d
s/[\\"]/\\&/g
s/^/"/
s/$/\\n"/
