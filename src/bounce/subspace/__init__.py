"""The subspace: where the search looks now. Embeddings, stages and trust regions."""
