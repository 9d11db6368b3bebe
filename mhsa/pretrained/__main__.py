"""Fetch the data files of the pretrained model, once: `python -m mhsa.pretrained`."""

from mhsa.pretrained.files import fetch

if __name__ == "__main__":
    fetch()
