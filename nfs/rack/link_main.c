/*
 * nf-link: makes the files of links, which the programs of a rack would make themselves.
 *
 *     nf-link s0.link n0.link
 */
#include <stdio.h>

#include "rack/link_file.h"

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: nf-link FILE...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++)
		if (!link_file_make(argv[i]))
			return 2;
	return 0;
}
