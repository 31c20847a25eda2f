"""Programs, simulators and small models that know no formula: what a chapter holds its formulas against."""
