"""Methods of admission, one file each: `placer admit --method NAME`."""
