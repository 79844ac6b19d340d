"""."""
import click
command = click.Command("score")
