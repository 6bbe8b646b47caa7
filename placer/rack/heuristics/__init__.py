"""What strategies without proof share: layouts that are given, cores one after another, Lemur's coalescing."""
