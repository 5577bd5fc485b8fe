"""Records what PyTorch computes for small fusejit graphs. `make_references.py` is the only caller."""
