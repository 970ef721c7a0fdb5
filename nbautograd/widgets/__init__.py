"""widgets: interactive views of the same values, through anywidget."""
