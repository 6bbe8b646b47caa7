"""Tests of the programs of a rack: switch, links, servers, SmartNICs."""
