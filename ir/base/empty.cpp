// A folder without sources yet needs one translation unit.
