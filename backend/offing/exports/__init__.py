"""Files and streams that training jobs read: a module a format behind `offing.exports.format`. Knows no database."""
