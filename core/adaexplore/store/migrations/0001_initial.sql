-- One search over one task: its fixed part, and its outcome once it is known.
CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    path TEXT NOT NULL,           -- absolute path of the user's file
    class_name TEXT NOT NULL,
    created_at TEXT NOT NULL,     -- UTC, ISO 8601
    task TEXT NOT NULL,           -- JSON: model.task.Task
    settings TEXT NOT NULL,       -- JSON: model.run.RunSettings
    environment TEXT NOT NULL,    -- JSON: model.task.Environment
    outcome TEXT NOT NULL,        -- model.run.RunOutcome
    seconds REAL NOT NULL,        -- time spent, over all sessions
    best_step INTEGER,            -- step of the best candidate of a finished run
    final TEXT,                   -- JSON: model.evaluation.Evaluation, the best one's confirmation
    FOREIGN KEY (id, best_step) REFERENCES steps (run_id, step)
);

CREATE INDEX runs_by_module ON runs (path, class_name);

-- What a run tried, and what came of it. Rows are added, never changed or removed: two triggers see to that.
CREATE TABLE steps (
    run_id TEXT NOT NULL REFERENCES runs (id),
    step INTEGER NOT NULL,        -- 1-based, without gaps
    candidate_id TEXT NOT NULL,   -- hash of the normalized source: evaluated once in a run
    candidate TEXT NOT NULL,      -- JSON: model.candidate.Candidate
    evaluation TEXT NOT NULL,     -- JSON: model.evaluation.Evaluation
    seconds REAL NOT NULL,        -- wall time of the evaluation
    PRIMARY KEY (run_id, step),
    UNIQUE (run_id, candidate_id)
);

CREATE TRIGGER steps_are_never_changed BEFORE UPDATE ON steps
BEGIN
    SELECT RAISE(ABORT, 'steps are append-only');
END;

CREATE TRIGGER steps_are_never_removed BEFORE DELETE ON steps
BEGIN
    SELECT RAISE(ABORT, 'steps are append-only');
END;
