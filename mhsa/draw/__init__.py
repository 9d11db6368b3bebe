"""Pictures as SVG text: pure functions of plain state. (plots.py: matplotlib, for curves and bars.)"""
