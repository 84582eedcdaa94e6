-- What was observed without an experiment: answers of `assay why`, runs of `assay net`, checks of Wi-Fi. Each is stored whole.
CREATE TABLE assay.observation (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid     text NOT NULL UNIQUE,
  started text NOT NULL,
  ended   text,
  state   text NOT NULL,
  name    text NOT NULL,
  about   text NOT NULL,
  slots   bigint NOT NULL DEFAULT 0,
  machine bigint REFERENCES assay.machine (id),
  body    bytea NOT NULL
);
