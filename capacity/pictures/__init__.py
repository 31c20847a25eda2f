"""Pictures of formulas, runs and things, alike in the page, in JupyterLab and on paper."""
