-- Names of features that the key may use, separated by commas. Keys from before have none.
ALTER TABLE keys ADD COLUMN permissions TEXT NOT NULL DEFAULT '';
