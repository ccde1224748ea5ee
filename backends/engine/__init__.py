"""What runs where the files are: files, processes, search. Standard library only, Python 3.6+."""
