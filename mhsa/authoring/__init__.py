"""What course.py calls for authors and teachers: `refresh` and `handout`. They need nbclient and nbformat as well."""
